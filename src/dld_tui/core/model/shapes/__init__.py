"""What operators do to shapes and to small values.

A size (:mod:`.size`) is a number, a polynomial over named dimensions, or unknown. One function an
operator (:mod:`.rules`) makes the values (:mod:`.value`) of a call (:mod:`.call`), and records what
sizes the operator demands, with the reason. :mod:`.evaluation` follows a whole model.
"""
