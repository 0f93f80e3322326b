package org.openapitools.jackson.nullable;

import java.util.NoSuchElementException;
import java.util.Objects;

/** A value that may be null, or absent; as in the library jackson-databind-nullable, which Maven installs. */
public final class JsonNullable<T> {
  private static final JsonNullable<?> UNDEFINED = new JsonNullable<>(null, false);

  private final T value;
  private final boolean present;

  private JsonNullable(T value, boolean present) {
    this.value = value;
    this.present = present;
  }

  @SuppressWarnings("unchecked")
  public static <T> JsonNullable<T> undefined() {
    return (JsonNullable<T>) UNDEFINED;
  }

  public static <T> JsonNullable<T> of(T value) {
    return new JsonNullable<>(value, true);
  }

  public T get() {
    if (!present) {
      throw new NoSuchElementException("Value is undefined");
    }
    return value;
  }

  public T orElse(T other) {
    return present ? value : other;
  }

  public boolean isPresent() {
    return present;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof JsonNullable
        && ((JsonNullable<?>) other).present == present
        && Objects.equals(((JsonNullable<?>) other).value, value);
  }

  @Override
  public int hashCode() {
    return Objects.hash(value, present);
  }
}
