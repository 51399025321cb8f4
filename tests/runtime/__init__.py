"""Tests of launch plans, of running them, and of the fake device."""
