"""Seeds that are derived, never drawn.

A seed is a keyed hash of what it is for: ``derive(study_seed, cell, item, sample)``. Adding a cell or an item
therefore changes no other seed, and no global random state is involved.
"""

import hashlib
import math
import struct

_PERSON = b"userturn.seed"
_DIGEST_BITS = 512


def _encode(part: str | int | float) -> bytes:
    """Encodes one part as type tag, payload length (8 bytes, big-endian) and payload."""
    if isinstance(part, bool):
        raise TypeError(f"a part of a seed must be a str, an int or a float, got the bool {part!r}")
    if isinstance(part, str):
        tag, payload = b"s", part.encode("utf-8")
    elif isinstance(part, int):
        tag, payload = b"i", str(int(part)).encode("ascii")
    elif isinstance(part, float):
        if not math.isfinite(part):
            raise ValueError(f"a part of a seed must be finite, got {part!r}")
        # -0.0 == 0.0, so both must lead to one seed: adding 0.0 drops the sign.
        tag, payload = b"f", struct.pack(">d", part + 0.0)
    else:
        raise TypeError(f"a part of a seed must be a str, an int or a float, got {type(part).__name__} {part!r}")
    return tag + len(payload).to_bytes(8, "big") + payload


def derive(seed: int, *parts: str | int | float, bits: int = 63) -> int:
    """Derives an integer from the study seed and what it is for.

    BLAKE2b (RFC 7693) keyed with the seed, over an encoding in which every part carries its type and length:
    the parts ``("ab", "c")`` and ``("a", "bc")`` differ, and so do ``1``, ``"1"`` and ``1.0``. Callers must
    hence be firm about
    types: a temperature is always a float.

    Args:
        seed: the study seed, any integer of at most 64 characters in decimal.
        *parts: what the seed is for, for example cell, item id, sample index.
        bits: width of the result. A narrower result is the leading bits of a wider one.

    Returns:
        An integer in ``[0, 2**bits)``; 63 bits fit a signed 64-bit integer, which engines expect.

    Raises:
        TypeError: a part, or the seed, has another type (bool included).
        ValueError: a float that is not finite, a seed too long, bits outside 1..512, text that is not valid
            Unicode.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"the seed must be an int, got {type(seed).__name__} {seed!r}")
    if not 1 <= bits <= _DIGEST_BITS:
        raise ValueError(f"bits must be in 1..{_DIGEST_BITS}, got {bits!r}")
    key = str(seed).encode("ascii")
    if len(key) > hashlib.blake2b.MAX_KEY_SIZE:
        raise ValueError(
            f"the seed must have at most {hashlib.blake2b.MAX_KEY_SIZE} decimal characters, got {len(key)}"
        )
    digest = hashlib.blake2b(key=key, person=_PERSON)
    for part in parts:
        digest.update(_encode(part))
    return int.from_bytes(digest.digest(), "big") >> (_DIGEST_BITS - bits)
