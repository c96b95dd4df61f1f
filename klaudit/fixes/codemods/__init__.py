"""Hand-written formulas: one file a mistake, from a finding on code to edits of the source, each proven before it is offered."""
