"""Teams that learn: the same task, policy and compute for every signal, with the exact return beside each step."""
