"""Surveys: definitions and their validation, answers, statistics, insights (contract 2.1, 4.1)."""
