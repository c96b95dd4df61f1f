"""Whose log-probabilities a value depends on, as bits."""

from __future__ import annotations

POLICY, OLD, REFERENCE, FOREIGN = 1, 2, 4, 8
ROLE_NAMES = {POLICY: "log pi", OLD: "log pi_old", REFERENCE: "log pi_ref", FOREIGN: "something else"}
