"""Makefiles: the recipes as shell, with make's own variables expanded in them."""

from klaudit.readers.make.reader import Makefile, Recipe, read_makefile

__all__ = ["Makefile", "Recipe", "read_makefile"]
