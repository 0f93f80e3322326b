package org.openapitools.jackson.nullable;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.BeanDescription;
import com.fasterxml.jackson.databind.BeanProperty;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.JsonSerializer;
import com.fasterxml.jackson.databind.SerializationConfig;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.deser.ContextualDeserializer;
import com.fasterxml.jackson.databind.deser.std.StdDeserializer;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.ser.BeanPropertyWriter;
import com.fasterxml.jackson.databind.ser.BeanSerializerModifier;
import com.fasterxml.jackson.databind.ser.ContextualSerializer;
import com.fasterxml.jackson.databind.ser.std.StdSerializer;
import java.io.IOException;
import java.util.List;

/** Writes and reads JsonNullable: an absent value is no field, and null is null. */
public final class JsonNullableModule extends SimpleModule {
  @SuppressWarnings({"unchecked", "rawtypes"})
  public JsonNullableModule() {
    addSerializer((Class) JsonNullable.class, new Serializer(null));
    addDeserializer((Class) JsonNullable.class, new Deserializer(null));
    setSerializerModifier(new OmitUndefined());
  }

  private static final class Serializer extends StdSerializer<JsonNullable<?>>
      implements ContextualSerializer {
    private final BeanProperty property;

    private Serializer(BeanProperty property) {
      super(JsonNullable.class, false);
      this.property = property;
    }

    @Override
    public JsonSerializer<?> createContextual(SerializerProvider provider, BeanProperty found) {
      return new Serializer(found);
    }

    // The property says whether a map's null values are written.
    @Override
    public void serialize(JsonNullable<?> value, JsonGenerator generator, SerializerProvider provider)
        throws IOException {
      Object content = value.orElse(null);
      if (content == null) {
        provider.defaultSerializeNull(generator);
      } else {
        provider.findTypedValueSerializer(content.getClass(), true, property).serialize(content, generator, provider);
      }
    }
  }

  private static final class Deserializer extends StdDeserializer<JsonNullable<?>>
      implements ContextualDeserializer {
    private final JavaType content;

    private Deserializer(JavaType content) {
      super(JsonNullable.class);
      this.content = content;
    }

    @Override
    public JsonDeserializer<?> createContextual(DeserializationContext context, BeanProperty property) {
      return new Deserializer(context.getContextualType().containedType(0));
    }

    @Override
    public JsonNullable<?> deserialize(JsonParser parser, DeserializationContext context)
        throws IOException {
      return JsonNullable.of(context.readValue(parser, content));
    }

    @Override
    public JsonNullable<?> getNullValue(DeserializationContext context) {
      return JsonNullable.of(null);
    }
  }

  private static final class OmitUndefined extends BeanSerializerModifier {
    @Override
    public List<BeanPropertyWriter> changeProperties(
        SerializationConfig config, BeanDescription bean, List<BeanPropertyWriter> writers) {
      writers.replaceAll(each -> each.getType().hasRawClass(JsonNullable.class) ? new Writer(each) : each);
      return writers;
    }
  }

  private static final class Writer extends BeanPropertyWriter {
    private Writer(BeanPropertyWriter base) {
      super(base);
    }

    @Override
    public void serializeAsField(Object bean, JsonGenerator generator, SerializerProvider provider)
        throws Exception {
      JsonNullable<?> value = (JsonNullable<?>) get(bean);
      if (value != null && value.isPresent()) {
        super.serializeAsField(bean, generator, provider);
      }
    }
  }
}
