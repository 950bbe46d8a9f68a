"""verlwatch: watches verl reinforcement-learning training runs from outside."""

__version__ = "0.1.0"
