"""Parquet files that are not trusted: what they unpack to (`unpacked`), and `damage`."""
