"""The command line: one file per command; heavy imports are inside the commands, so that help appears at once."""
