"""An abstract run of one function: every expression becomes a node of the value graph or a value around it.  Nothing is executed.

The layers, each a file: `machine` (state, names, sinks) - `expressions` - `calls` (following and recognising them) - `statements`.
`operations` is the whitelist of library functions and tensor methods that have a meaning in the graph.
"""

from klaudit.code.interpreter.machine import BudgetError, Sink
from klaudit.code.interpreter.statements import Interpreter

__all__ = ["BudgetError", "Interpreter", "Sink"]
