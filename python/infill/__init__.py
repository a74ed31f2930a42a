"""Fill the blanks of a text jointly, with a masked language model.

>>> from infill import Infill
>>> m = Infill()
>>> m.fill("he had [MASK] me", top=3)[0].text
'he had forgotten me'
"""

import importlib.metadata

from ._client import Infill, pipeline
from ._process import InfillError, PipelineException
from ._results import Exercise, Fill, Pair, Result, Score, Table

try:
    __version__ = importlib.metadata.version("infill")
except importlib.metadata.PackageNotFoundError:  # run from the source
    __version__ = "unknown"

__all__ = ["Exercise", "Fill", "Infill", "InfillError", "Pair", "PipelineException", "Result", "Score", "Table",
           "__version__", "pipeline"]
