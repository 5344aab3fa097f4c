"""The archive: accepted reports in Parquet files, so that they can be counted again, here or on a cluster."""
