"""What a person starts: arguments, configuration, session, one call, an exit code."""
