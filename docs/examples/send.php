<?php
// Send a message to a conversation, once, however often it has to be tried. Needs PHP 8.0 or newer, and nothing else.
//
// BASE=http://127.0.0.1:8080 KEY=sk_... php send.php cnv_... order-1001-shipped "It left us today."
// The second argument is the Idempotency-Key: the id that the message has in your own system.

declare(strict_types=1);

const ATTEMPTS = 8;
const AGAIN = [409, 429, 500, 502, 503, 504];

/** The message as it was stored. Throws a RuntimeException if it was refused, or the service was unavailable for too long. */
function send(string $conversation, string $key, string $text): array
{
    $url = getenv('BASE') . "/v3/s2s/conversations/$conversation/messages";
    $headers = [
        'Authorization: Bearer ' . getenv('KEY'),
        'Content-Type: application/json',
        "Idempotency-Key: $key", // the same on each attempt
    ];
    $content = json_encode(['text' => $text, 'author' => ['type' => 'bot', 'name' => 'Shop']], JSON_THROW_ON_ERROR);
    $options = ['method' => 'POST', 'header' => $headers, 'content' => $content, 'timeout' => 30, 'ignore_errors' => true];
    $reason = '';
    for ($attempt = 0; $attempt < ATTEMPTS; $attempt++) {
        $http_response_header = [];
        $body = @file_get_contents($url, false, stream_context_create(['http' => $options]));
        $wanted = '';
        if ($body === false || !preg_match('/ (\d{3})/', $http_response_header[0] ?? '', $found)) {
            $reason = 'no answer'; // it may have been stored, which the key tells the service
        } else {
            $status = (int) $found[1];
            $message = json_decode($body, true);
            if ($status === 200 && is_array($message)) {
                return $message;
            }
            foreach ($http_response_header as $line) {
                if (preg_match('/^Retry-After:\s*(\d+)/i', $line, $seconds)) {
                    $wanted = $seconds[1];
                }
            }
            $reason = $body;
            // A 200 without its whole body was stored, too: the key brings the answer again.
            if ($status !== 200 && (!in_array($status, AGAIN, true) || ($status === 409 && $wanted === ''))) {
                break;
            }
        }
        if ($attempt < ATTEMPTS - 1) {
            $pause = $wanted !== '' ? (int) $wanted : min(2 ** $attempt, 30);
            sleep($pause);
            usleep(random_int(0, 1_000_000)); // not all clients at once
        }
    }
    throw new RuntimeException($reason);
}

try {
    $message = send($argv[1], $argv[2], $argv[3]);
    echo 'sent ', $message['id'], PHP_EOL;
} catch (RuntimeException $refusal) {
    fwrite(STDERR, 'not sent: ' . $refusal->getMessage() . PHP_EOL);
    exit(1);
}
