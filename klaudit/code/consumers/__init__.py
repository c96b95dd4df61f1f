"""Which formulas of a framework's source in the tree a launch really uses, and what they make of its terms.

`guards` evaluates the tests under which code imports and calls; `imports` knows who imports and mentions a name; `reach` goes from a
formula back to the program that a launch starts; `consumers` ties a term's settings to the formulas that are reached.
"""
