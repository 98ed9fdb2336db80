#!/bin/bash
# Ends with 0 if the model is AVAILABLE; the address answers with status 200 while it loads, too.
# It needs nothing but bash and grep, because the image of the server has no curl.
exec 3<>"/dev/tcp/127.0.0.1/${1:-8501}" || exit 1
printf 'GET /v1/models/%{model} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
grep --quiet '"AVAILABLE"' <&3
