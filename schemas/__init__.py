"""Declarations of every table: the single source of truth for columns, keys and their meaning."""
