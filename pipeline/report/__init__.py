"""What people and machines read: files of a run, and the terminal."""
