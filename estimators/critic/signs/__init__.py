"""Where the signs of a critic's increments hold: circumstances of events, and regions of them."""
