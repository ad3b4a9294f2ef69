"""What a GPU did, joined to the layers that asked for it. No library of a GPU is needed here."""
