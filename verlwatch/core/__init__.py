"""The pure part: bytes and `now` go in, records, judgements and messages come out.  No file, no socket, no clock."""
