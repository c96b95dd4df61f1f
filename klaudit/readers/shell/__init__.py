"""Shell scripts: what they start, found by running them without running anything.

The reader follows a script as bash would, with real variables, loops and functions, on a machine where every other program succeeds
and prints nothing.  Characters remember where they were written (`text`), code knows the same of itself (`code`), and whatever hangs
on the machine is carried along as unknown.

    lexer, parts, scan, words      bytes -> words and simple commands
    parse, cursor, program         statements -> a flat list of instructions
    machine, control, execution    runs them; `state` is what can be copied to go another way (`exploration`)
    expand, parameters, fields ..  words -> arguments
    builtins, declarations ..      what the shell does itself; `filters`, `names_and_numbers` text tools; `carried` code in words
    reader, commands               the way in, and the way out to documents
"""

from klaudit.readers.shell.reader import may_start, read_shell

__all__ = ["may_start", "read_shell"]
