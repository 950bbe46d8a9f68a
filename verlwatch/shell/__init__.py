"""The effects around the pure core: files, the database, HTTP, the service manager.  Next to no decisions."""
