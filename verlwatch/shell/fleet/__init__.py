"""One run on many hosts: agents read where the files are, a hub judges (see docs/FLEET.md)."""
