# frozen_string_literal: true

# Receive Deskwire's webhooks: verify, store, answer, and then work. Needs Ruby 3.0 or newer and `gem install webrick`;
# in Rails or Sinatra the raw body is `request.raw_post` or `request.body.read`.
#
# WEBHOOK_SECRET=whsec_... ruby verify.rb 9000
# While you rotate the secret, give both: WEBHOOK_SECRET=whsec_new,whsec_old

require "fileutils"
require "json"
require "openssl"
require "securerandom"

TOLERANCE_S = 300
BODY_MAX = 1 << 20
INBOX = ENV.fetch("INBOX", "deskwire-inbox")

# Whether `header`, the value of Service-Signature, signs `body`, the raw bytes as they came.
def verify(secret, header, body, now = Time.now.to_i)
  t = ""
  signatures = []
  header.split(",").each do |part|
    name, value = part.strip.split("=", 2)
    t = value.to_s if name == "t"
    signatures << value.to_s if name == "v1"
  end
  return false unless t.match?(/\A[0-9]{1,15}\z/) && (now - t.to_i).abs <= TOLERANCE_S

  # The key is the whole secret, `whsec_` included. It is not base64: do not decode it.
  secret.split(",").any? do |key|
    expected = OpenSSL::HMAC.hexdigest("SHA256", key.strip, "#{t}.".b + body.b)
    signatures.any? { |each| OpenSSL.secure_compare(expected, each) }
  end
end

# Keeps an event in a file of its own; false if it is there. A table with a unique column does the same.
def store(event_id, body)
  FileUtils.mkdir_p(INBOX)
  part = File.join(INBOX, ".#{event_id}-#{SecureRandom.hex(8)}")
  File.binwrite(part, body)
  File.link(part, File.join(INBOX, "#{event_id}.json")) # whole, and once
  true
rescue Errno::EEXIST
  false
ensure
  FileUtils.rm_f(part) if part
end

# The status of the answer, and the event if it is a new one.
def receive(header, body)
  return [400, nil] unless body.bytesize <= BODY_MAX && verify(ENV.fetch("WEBHOOK_SECRET"), header, body)

  event = JSON.parse(body)
  return [400, nil] unless event["id"].match?(/\Aevt_[0-9A-Za-z]{1,60}\z/)
  return [204, event] if store(event["id"], body)

  puts "again #{event['id']}"
  [204, nil]
end

# Do what your business needs, one event after the other. What a crash leaves undone is in the inbox.
def work(event)
  puts "verified #{event['type']} #{event['sequence'] || 'null'} #{event['id']}"
end

if $PROGRAM_NAME == __FILE__
  require "webrick"

  $stdout.sync = true
  jobs = Queue.new
  Thread.new { loop { work(jobs.pop) } }
  quiet = WEBrick::Log.new(File::NULL)
  server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ARGV[0].to_i, Logger: quiet, AccessLog: [])
  server.mount_proc("/") do |request, response|
    response.status, event = receive(request["Service-Signature"].to_s, request.body.to_s)
    jobs << event if event # answered within 5 seconds, whatever the work takes
  end
  %w[INT TERM].each { |signal| trap(signal) { server.shutdown } }
  server.start
end
