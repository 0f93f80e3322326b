package org.apache.http.entity.mime;

import java.io.File;
import org.apache.http.HttpEntity;

/** Stands in for the library that the generated client sends files with; the compiler alone sees it. */
public class MultipartEntityBuilder {
  public static MultipartEntityBuilder create() {
    return new MultipartEntityBuilder();
  }

  public MultipartEntityBuilder addBinaryBody(String name, File file) {
    return this;
  }

  public HttpEntity build() {
    return null;
  }
}
