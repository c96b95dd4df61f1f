"""KL formulas in Python source: which estimator each is, of whose log-probabilities, and where its value goes.  Nothing is executed.

The way of a file, a module a step: `screen` (worth reading?) - `modules` (parsed, names and imports) - `interpreter` (an abstract run of
each function) onto a value `graph` - `flow` (losses, rewards and metrics taken apart into formulas) - `evaluation` (each formula by its
value and slope, against the theory's table) - `result`.  `analyse` walks it.  `judge` and `setups` put a result into the words of
klaudit.model, `explain` into text.
"""
