"""What tools/check_rules.py is made of: releases (downloads), sources (what their files say), compare (against the rules)."""
