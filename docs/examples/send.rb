# frozen_string_literal: true

# Send a message to a conversation, once, however often it has to be tried. Needs Ruby 3.0 or newer, and nothing else.
#
# BASE=http://127.0.0.1:8080 KEY=sk_... ruby send.rb cnv_... order-1001-shipped "It left us today."
# The second argument is the Idempotency-Key: the id that the message has in your own system.

require "json"
require "net/http"
require "openssl"

ATTEMPTS = 8
AGAIN = [409, 429, 500, 502, 503, 504].freeze
NO_ANSWER = [SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::ProtocolError,
             Net::HTTPBadResponse].freeze

class Refused < StandardError; end

# The message as it was stored. Raises Refused if it was refused, or the service was unavailable for too long.
def send_message(conversation, key, text)
  url = URI("#{ENV.fetch('BASE')}/v3/s2s/conversations/#{conversation}/messages")
  request = Net::HTTP::Post.new(
    url,
    "Authorization" => "Bearer #{ENV.fetch('KEY')}",
    "Content-Type" => "application/json",
    "Idempotency-Key" => key # the same on each attempt
  )
  request.body = JSON.generate(text: text, author: { type: "bot", name: "Shop" })
  reason = nil
  ATTEMPTS.times do |attempt|
    wanted = nil
    begin
      options = { use_ssl: url.scheme == "https", open_timeout: 10, read_timeout: 30, max_retries: 0 }
      answer = Net::HTTP.start(url.host, url.port, nil, **options) { |http| http.request(request) }
      return JSON.parse(answer.body) if answer.is_a?(Net::HTTPOK)

      reason = answer.body
      wanted = answer["Retry-After"]
      break unless AGAIN.include?(answer.code.to_i) && (answer.code != "409" || wanted)
    rescue *NO_ANSWER => e
      reason = e.message # no answer: it may have been stored, which the key tells the service
    end
    next if attempt == ATTEMPTS - 1

    pause = wanted&.match?(/\A[0-9]+\z/) ? wanted.to_i : [2**attempt, 30].min
    sleep(pause + rand) # not all clients at once
  end
  raise Refused, reason
end

if $PROGRAM_NAME == __FILE__
  begin
    puts "sent #{send_message(*ARGV[0, 3])['id']}"
  rescue Refused => e
    abort "not sent: #{e.message}"
  end
end
