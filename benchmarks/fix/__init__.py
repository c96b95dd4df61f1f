"""What `klaudit fix` makes of whole public trees, measured without klaudit: bash expands every script, Hydra composes every config.

`python -m benchmarks.fix verl TREE` copies the tree, fixes the copy and compares what every launch would train with before and after.
"""
