"""The errors that Workbench raises: one base, few kinds.

Each message says what was found, what was expected and what to do.
"""


class WorkbenchError(Exception):
    """Base of every error that Workbench raises on purpose."""


class OptionError(WorkbenchError, ValueError):
    """An option has a value outside its range, or of the wrong type."""


class UnsupportedError(WorkbenchError, NotImplementedError):
    """A known request that nothing here implements; the message names it."""


class NativeError(WorkbenchError, ImportError):
    """The native library is missing, or was built for another TensorFlow."""


class DataError(WorkbenchError, ValueError):
    """A data file cannot be read; the message names file, row and column."""


class PlanError(WorkbenchError, ValueError):
    """A graph cannot be cut as asked, or a plan does not fit the graph it meets."""


class NoInputError(PlanError):
    """A graph has neither a stage nor an input, so there is nowhere to cut."""


class TraceError(WorkbenchError, ValueError):
    """A trace breaks one of its invariants, or is in a format this version cannot read."""


class RunError(WorkbenchError, RuntimeError):
    """A run in a child process ended without a result; the message says how."""
