"""Numbers as text."""
import numpy as np


def plain(value):
    """Numbers as people write them: 1, 0.5; text unchanged."""
    if isinstance(value, (bytes, np.bytes_)):
        return value.decode()
    return f"{value:g}" if isinstance(value, (int, float, np.number)) else str(value)


def value(mean, se=np.nan, signed=False):
    """A number with its standard error, with as many digits as the error supports."""
    if not np.isfinite(mean):
        return "–"
    if not np.isfinite(se) and 0 < abs(mean) < 0.1:
        return f"{mean:.2g}"
    digits = 2 if not np.isfinite(se) or se <= 0 else int(np.clip(1 - np.floor(np.log10(se)), 0, 4))
    shown = f"{mean:{'+' if signed else ''}.{digits}f}".replace("-", "−")
    return shown if not np.isfinite(se) else f"{shown} ± {se:.{digits}f}"
