# frozen_string_literal: true

# Serves `Support` of the guide for Rails with a sign-in by a header: ruby rails_host.rb PORT.

require "uri"
require "webrick"
require_relative "app/models/support"
require_relative "lib/verify"

def answered(request, response)
  user = request["X-User"]
  return response.status = 401 if user.nil?

  response.status = 204
  yield user
rescue JSON::ParserError, KeyError, ArgumentError
  response.status = 400
rescue Support::Refused => e
  response.status = e.status < 500 ? e.status : 503
end

quiet = WEBrick::Log.new(File::NULL)
server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ARGV[0].to_i, Logger: quiet, AccessLog: [])
server.mount_proc("/deskwire/webhooks") do |request, response|
  response.status, = receive(request["Service-Signature"].to_s, request.body.to_s)
end
server.mount_proc("/deskwire/messages") do |request, response|
  answered(request, response) do |user|
    sent = JSON.parse(request.body.to_s)
    Support.post_message(user, sent.fetch("id"), sent.fetch("text"))
  end
end
server.mount_proc("/deskwire/auth") do |request, response|
  answered(request, response) do |user|
    fields = URI.decode_www_form(request.body.to_s).to_h.transform_keys(&:to_sym)
    allowed = Support.authorize(user, **fields)
    response.status = allowed ? 200 : 403
    response.body = JSON.generate(allowed)
  end
end
server.start
