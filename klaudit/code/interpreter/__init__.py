"""An abstract run of one function: every expression becomes a node of the value graph or a value around it.  Nothing is executed.

The layers, each a file and each adding to the one before: `machine` (state, names, sinks) - `members` (of classes and functions) -
`access` (names, attributes, items) - `branching` (tests as conditions) - `expressions` - `results` (calls that are not run) -
`following` (calls that are) - `calls` - `statements`.  `operations` is the whitelist of library functions and tensor methods that have
a meaning in the graph.
"""

from klaudit.code.interpreter.machine import BudgetError, Sink
from klaudit.code.interpreter.statements import Interpreter

__all__ = ["BudgetError", "Interpreter", "Sink"]
