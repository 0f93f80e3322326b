"""The limits that keep one caller from taking what others need."""
