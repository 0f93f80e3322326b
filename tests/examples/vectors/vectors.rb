# frozen_string_literal: true

# Print the verdicts of an example on the vectors: ruby vectors.rb verify.rb FILE

require "json"
require ARGV[0]

vectors = JSON.parse(File.read(ARGV[1]))
puts JSON.generate(vectors.map { |v| verify(v["secret"], v["header"], v["body"], v["now"]) })
