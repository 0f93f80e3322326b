"""Surveys: definitions and what may be wrong with them, answers, statistics, insights (contract 2.1, 4.1)."""
