# frozen_string_literal: true

# Follow every event of a project. Needs Ruby 3.0 or newer and `gem install websocket`, then
# BASE=http://127.0.0.1:8080 KEY=sk_... ruby subscribe.rb [FILE]
# This runs on your server: the server key must never reach a customer.
# In FILE it keeps its place: started again, it goes on behind the last event that it has worked through.

require "json"
require "net/http"
require "openssl"
require "socket"
require "websocket"

BASE = URI(ENV.fetch("BASE"))
HEADERS = { "Authorization" => "Bearer #{ENV.fetch('KEY')}", "Content-Type" => "application/json" }.freeze
CONSUMER = "mirror-#{Socket.gethostname}-#{Process.pid}" # a new one for each start of the process
SILENCE_S = 180 # the service sends pings far more often
FOR_GOOD = [4001, 4007, 4009].freeze # a takeover, or a revoked key

# Follows one project over as many connections as it takes.
class Follower
  def initialize(file)
    @file = file
    @resume = file && File.exist?(file) ? File.read(file) : "auto"
    @recent = [] # what was under way when a connection broke comes twice
    @project = call(Net::HTTP::Get.new("/v3/s2s/project", HEADERS))
  end

  def run
    pause = 1
    loop do
      began = Time.now
      begin
        follow
      rescue SystemCallError, IOError, SocketError, OpenSSL::SSL::SSLError, Timeout::Error => e
        warn "#{e.class}: #{e.message}"
      end
      pause = 1 if Time.now - began > 60
      sleep(pause * (0.5 + rand)) # not all consumers at once
      pause = [pause * 2, 30].min
    end
  end

  private

  # One connection, until it ends.
  def follow
    @socket = connect
    handshake = WebSocket::Handshake::Client.new(
      url: "#{BASE.to_s.sub('http', 'ws')}/app/#{@project['streamKey']}?protocol=7&client=ruby&version=1"
    )
    @socket.write(handshake.to_s)
    handshake << received until handshake.finished?
    raise IOError, "the handshake failed" unless handshake.valid?

    @version = handshake.version
    frames = WebSocket::Frame::Incoming::Client.new(version: @version)
    frames << handshake.leftovers if handshake.leftovers
    loop do
      while (frame = frames.next)
        return if frame.type == :close && over?(frame)

        answer(frame)
      end
      frames << received
    end
  ensure
    @socket&.close
  end

  def connect
    plain = Socket.tcp(BASE.host, BASE.port, connect_timeout: 10)
    return plain unless BASE.scheme == "https"

    secure = OpenSSL::SSL::SSLSocket.new(plain, OpenSSL::SSL::SSLContext.new.tap(&:set_params))
    secure.hostname = BASE.host
    secure.sync_close = true
    secure.connect
    secure.post_connection_check(BASE.host)
    secure
  end

  def received
    @socket.read_nonblock(65_536)
  rescue IO::WaitReadable
    raise IOError, "nothing was heard for #{SILENCE_S} s" unless @socket.to_io.wait_readable(SILENCE_S)

    retry
  end

  def send_frame(data, type = :text)
    @socket.write(WebSocket::Frame::Outgoing::Client.new(version: @version, data: data, type: type).to_s)
  end

  def over?(frame)
    abort "over for good: #{frame.data}" if FOR_GOOD.include?(frame.code)
    true
  end

  def answer(frame)
    case frame.type
    when :ping then send_frame(frame.data, :pong) # confirms what has arrived
    when :text then take(JSON.parse(frame.to_s))
    end
  end

  # A message of the Pusher protocol; towards clients `data` is JSON in a text.
  def take(message)
    data = message["data"].is_a?(String) ? JSON.parse(message["data"]) : message["data"]
    case message["event"]
    when "pusher:connection_established" then subscribe(data["socket_id"])
    when "pusher_internal:subscription_succeeded"
      @resume = "auto" # from now on the service knows the place
      puts "subscribed #{data}" # gap: fetch the conversations again
    when "pusher:subscription_error" then puts "refused #{data}"
    when "pusher:ping" then send_frame(JSON.generate(event: "pusher:pong", data: {}))
    when "pusher:error" then warn data
    else work(data)
    end
  end

  def subscribe(socket_id)
    channel = "private-project-#{@project['id']}"
    request = Net::HTTP::Post.new("/v3/s2s/stream/auth", HEADERS)
    request.body = JSON.generate(socket_id: socket_id, channel_name: channel, consumerId: CONSUMER, resume: @resume)
    auth = call(request)["auth"]
    send_frame(JSON.generate(event: "pusher:subscribe", data: { channel: channel, auth: auth }))
  end

  def work(event)
    return if @recent.include?(event["id"])

    puts "#{event['type']} #{event['sequence'] || 'null'} #{event['id']}" # your work
    @recent.push(event["id"])
    @recent.shift if @recent.size > 1000
    return unless @file

    File.write("#{@file}.new", event["id"])
    File.rename("#{@file}.new", @file)
  end

  def call(request)
    options = { use_ssl: BASE.scheme == "https", open_timeout: 10, read_timeout: 30 }
    response = Net::HTTP.start(BASE.host, BASE.port, nil, **options) { |http| http.request(request) }
    raise IOError, "#{request.path}: #{response.code}" unless response.is_a?(Net::HTTPSuccess)

    JSON.parse(response.body)
  end
end

if $PROGRAM_NAME == __FILE__
  $stdout.sync = true
  Follower.new(ARGV[0]).run
end
