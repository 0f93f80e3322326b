# frozen_string_literal: true

# Sign a customer's identity for Deskwire's widget. Needs Ruby 3.0 or newer, and nothing else.
#
# CHANNEL_ID=chn_... CHANNEL_SECRET=chs_... ruby identify.rb user-1 "Ada Lovelace"
#
# Call `identify` in a route of your site that knows who is signed in, and answer with its result. The secret stays in your backend.

require "json"
require "openssl"

LIFETIME_S = 3600 # at most 24 hours are accepted

def encoded(data)
  [data].pack("m0").tr("+/", "-_").delete("=")
end

# The identity of the signed-in user. `profile` may have name, email, phone, avatar and attributes.
def identify(channel_id, secret, user_id, profile = {})
  claims = profile.merge(sub: user_id, aud: channel_id, exp: Time.now.to_i + LIFETIME_S)
  signed = [{ alg: "HS256", typ: "JWT" }, claims].map { |part| encoded(JSON.generate(part)) }.join(".")
  "#{signed}.#{encoded(OpenSSL::HMAC.digest('SHA256', secret, signed))}"
end

if $PROGRAM_NAME == __FILE__
  user_id, name = ARGV
  puts identify(ENV.fetch("CHANNEL_ID"), ENV.fetch("CHANNEL_SECRET"), user_id, { name: name })
end
