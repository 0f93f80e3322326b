"""The common part of surveys' and workflows' definitions: rules, and checks of any JSON."""
