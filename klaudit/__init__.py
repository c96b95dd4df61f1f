"""klaudit: finds, judges and migrates KL penalties in RL training of language models."""

__version__ = "0.1.0"
