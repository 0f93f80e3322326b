/** The version of the package; the build sets it from the root's pyproject.toml. */
export const VERSION = "0.0.0";
