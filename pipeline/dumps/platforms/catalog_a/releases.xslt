<!--
  What is taken out of <release> records, as two sections of text: releases, then the rows of their track lists in document order.
  Both shapes (empty children always present, empty children left out) give the same text. Run by extraction.py, which says what the
  separators are. Nested for-each instead of a union of paths: a union is sorted into document order, twice the price of the rest.
-->
<!DOCTYPE xsl:stylesheet [
<!ENTITY value "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD0;</xsl:text>">
<!ENTITY row "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD1;</xsl:text>">
<!ENTITY section "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD2;</xsl:text>">
<!ENTITY part "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD3;</xsl:text>">
<!ENTITY item "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD4;</xsl:text>">
]>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text" encoding="UTF-8"/>

  <xsl:template match="/releases">
    <xsl:for-each select="release">
      <xsl:value-of select="@id"/>&value;
      <xsl:value-of select="@status"/>&value;
      <xsl:value-of select="title"/>&value;
      <xsl:value-of select="released"/>&value;
      <xsl:value-of select="master_id"/>&value;
      <xsl:value-of select="labels/label[1]/@id"/>&value;
      <xsl:value-of select="labels/label[1]/@name"/>&value;
      <xsl:value-of select="labels/label[1]/@catno"/>&value;
      <xsl:value-of select="sum(formats/format/@qty)"/>&value;
      <xsl:for-each select="formats/format"><xsl:value-of select="@name"/>&item;</xsl:for-each>&value;
      <xsl:for-each select="formats/format/descriptions/description"><xsl:value-of select="."/>&item;</xsl:for-each>&value;
      <xsl:for-each select="genres/genre"><xsl:value-of select="."/>&item;</xsl:for-each>&value;
      <xsl:for-each select="styles/style"><xsl:value-of select="."/>&item;</xsl:for-each>&value;
      <xsl:for-each select="identifiers/identifier[@type = 'Barcode' or @type = 'ISRC']">
        <xsl:value-of select="@type"/>&part;<xsl:value-of select="@value"/>&part;<xsl:value-of select="@description"/>&item;
      </xsl:for-each>&value;
      <xsl:for-each select="videos/video"><xsl:value-of select="@src"/>&item;</xsl:for-each>&value;
      <xsl:for-each select="artists/artist"><xsl:call-template name="credit"/></xsl:for-each>&value;
      <xsl:for-each select="extraartists/artist[contains(role, 'Remix') or contains(role, 'Feat')]">
        <xsl:call-template name="extra"/>
      </xsl:for-each>&value;
      <xsl:value-of select="count(tracklist/track) + count(tracklist/track/sub_tracks/track)"/>&row;
    </xsl:for-each>
    &section;
    <xsl:for-each select="release/tracklist/track">
      <xsl:if test="sub_tracks/track">index</xsl:if>
      <xsl:call-template name="track"/>
      <xsl:for-each select="artists/artist"><xsl:call-template name="credit"/></xsl:for-each>&value;
      <xsl:for-each select="extraartists/artist[contains(role, 'Remix') or contains(role, 'Feat')]">
        <xsl:call-template name="extra"/>
      </xsl:for-each>&row;
      <xsl:for-each select="sub_tracks/track">sub<xsl:call-template name="track"/>
        <xsl:choose>
          <xsl:when test="artists/artist">
            <xsl:for-each select="artists/artist"><xsl:call-template name="credit"/></xsl:for-each>
          </xsl:when>
          <xsl:otherwise>
            <xsl:for-each select="../../artists/artist"><xsl:call-template name="credit"/></xsl:for-each>
          </xsl:otherwise>
        </xsl:choose>&value;
        <xsl:for-each select="(.|../..)/extraartists/artist[contains(role, 'Remix') or contains(role, 'Feat')]">
          <xsl:call-template name="extra"/>
        </xsl:for-each>&row;
      </xsl:for-each>
    </xsl:for-each>
  </xsl:template>

  <xsl:template name="track">&value;
    <xsl:value-of select="position"/>&value;
    <xsl:value-of select="title"/>&value;
    <xsl:value-of select="duration"/>&value;
  </xsl:template>

  <xsl:template name="credit">
    <xsl:value-of select="id"/>&part;
    <xsl:value-of select="name"/>&part;
    <xsl:value-of select="anv"/>&part;
    <xsl:value-of select="join"/>&item;
  </xsl:template>

  <xsl:template name="extra">
    <xsl:value-of select="id"/>&part;
    <xsl:value-of select="name"/>&part;
    <xsl:value-of select="anv"/>&part;
    <xsl:value-of select="role"/>&part;
    <xsl:value-of select="tracks"/>&item;
  </xsl:template>
</xsl:stylesheet>
