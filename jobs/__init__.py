"""What a person starts: arguments, configuration, session, one call into `pipeline`, an exit code."""
