"""Tables: CSV, JSON lines and Parquet as rows, and what tables outside a log say of its traces."""
