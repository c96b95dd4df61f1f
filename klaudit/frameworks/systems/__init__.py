"""Configuration systems: how a kind of program turns defaults, files and arguments into effective settings."""
