"""Pages of the documentation that are made from what klaudit knows: rules, frameworks, commands, plots.  None is committed."""
