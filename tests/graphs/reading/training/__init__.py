"""Readers of training rollouts."""
