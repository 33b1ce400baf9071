"""The command line: one file per command; heavy imports wait inside the commands, so help appears at once."""
