"""What conversions run: libraries in processes of their own, and verification."""
