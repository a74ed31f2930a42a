# The command with its runtime library, for a user that is not root:
#
#   docker build -t example.org/infill .
#   docker buildx build --platform linux/amd64,linux/arm64 -t example.org/infill --push .
#   docker run --rm -v "$PWD:/data" -w /data -u "$(id -u)" example.org/infill run templates.jsonl -o fills.jsonl
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=1 go build -trimpath -o /out/infill ./cmd/infill
# Fetched once, verified, and kept in the image with the built-in model: a pod needs no network.
ENV INFILL_CACHE=/out/cache
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip && \
    /out/infill setup && /out/infill --seed 1 "he had [MASK] me" && chmod -R a+rX /out

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libstdc++6 && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/infill /usr/local/bin/infill
COPY --from=build /out/cache /usr/local/share/infill
ENV INFILL_CACHE=/usr/local/share/infill
USER 65532:65532
ENTRYPOINT ["infill"]
